"""`python -m sumrate.traces`: makes a trace."""

import sys

from sumrate.traces.command import main

sys.exit(main())
