"""The dashboard for ``panel serve apps/dashboard.py --auth-module apps/door.py``: pages of runs, live and recorded.

WORKBENCH_RUNS says which folders of runs it may open (default: ``runs``). Addresses need a token, which is printed when
the server starts. Without the auth module they need it too, but it is printed when a first page is asked for, and who
has none gets a page that says so where the door answers 403.
"""

from workbench.pages.session import show
from workbench.pages.site import site_of_environment

show(site_of_environment()).servable()
