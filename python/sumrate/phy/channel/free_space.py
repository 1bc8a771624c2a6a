"""The line of sight alone."""

import numpy as np
from numpy.typing import ArrayLike

from sumrate.phy.channel.rays import Rays
from sumrate.phy.directions import angles_of, points
from sumrate.phy.parameters import ParameterError
from sumrate.phy.propagation import (
    CARRIER_HZ,
    SPEED_OF_LIGHT,
    free_space_loss_db,
    oxygen_loss_db,
    wavelength,
)


def free_space(
    transmitter: ArrayLike, receiver: ArrayLike, frequency_hz: float = CARRIER_HZ
) -> Rays:
    """The line of sight: Friis and oxygen.

    Args:
        transmitter: metres, shape (..., 3).
        receiver: metres, shape (..., 3); shapes broadcast.
        frequency_hz: carrier.

    Returns:
        One ray for each link: fields of shape (..., 1).

    Raises:
        ParameterError: transmitter and receiver are at the same place.

    """
    start, end = np.broadcast_arrays(
        points("transmitter", transmitter), points("receiver", receiver)
    )
    way = end - start
    distance = np.linalg.norm(way, axis=-1)
    if not (distance > 0).all():
        raise ParameterError("distance of receiver from transmitter", 0.0, "more than 0")
    loss = free_space_loss_db(distance, frequency_hz) + oxygen_loss_db(distance, frequency_hz)
    departure, arrival = angles_of(way), angles_of(-way)
    phase = -2 * np.pi * distance / wavelength(frequency_hz)
    one = np.newaxis
    return Rays(
        -loss[..., one],
        (distance / SPEED_OF_LIGHT)[..., one],
        departure[0][..., one],
        departure[1][..., one],
        arrival[0][..., one],
        arrival[1][..., one],
        phase[..., one],
        np.zeros((*distance.shape, 1), dtype=np.int64),
        np.stack([start, end], axis=-2)[..., one, :, :],
    )
