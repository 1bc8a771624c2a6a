"""`python -m sumrate.lab.stream source|sink`: one end of a stream."""

import sys

from sumrate.lab.stream.ends import main

sys.exit(main())
