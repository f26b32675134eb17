"""``python -m leadline`` is the command ``leadline``."""

import sys

from leadline.cli import main

sys.exit(main())
