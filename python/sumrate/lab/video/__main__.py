"""`python -m sumrate.lab.video`: the player as a process of its own."""

import sys

from sumrate.lab.video.player import main

sys.exit(main())
