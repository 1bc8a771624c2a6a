"""The 60 GHz physical layer: arrays, beams, channels, blockage, rates.

Conventions everywhere: metres, seconds, hertz; angles in radians; powers in dBm, gains in dBi,
ratios in dB; rates in Mbit/s. Arrays of numpy, shapes in the docstrings; functions take arrays and
numbers alike. Whatever is random takes a `numpy.random.Generator`.
"""
