"""The ``workbench`` command: one file for each verb, loaded when the verb is asked for."""
