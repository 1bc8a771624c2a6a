"""The demo: one real file by plain curl over WiFi, WiGig, kernel MPTCP and Sumrate."""
