"""`python -m sumrate.lab`: the same as the command `sumrate-lab`."""

import sys

from sumrate.lab.cli import main

sys.exit(main())
