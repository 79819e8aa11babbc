"""Who may open the dashboard's pages: ``panel serve apps/dashboard.py --auth-module apps/door.py``.

With it a request without a token, or under a name that is not this server's, gets 403 before anything is made of it.
"""

from workbench.pages.door import Door
from workbench.pages.site import site_of_environment

_door = Door(site_of_environment().access)
get_user = _door.get_user
get_login_url = _door.get_login_url
