"""The process that sends one notification; started by `planrun.notify.sending` and never imported."""
