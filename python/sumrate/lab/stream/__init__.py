"""The method `stream`: the same little sender and receiver through every scheme.

`python -m sumrate.lab.ends source|sink` is one end; `sumrate.lab.stream_run` runs both. Nothing
is imported here, so that an end starts fast and stays small.
"""
