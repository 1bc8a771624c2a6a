"""What a user notices: files, web pages and daily programs, by unmodified programs over a scheme.

Below the laboratory's experiments and above its scenes: a workload gets two hosts and a transport
under test, starts real servers and clients on them, and gives what it timed. It knows nothing of
experiments, repetitions or verdicts.
"""
