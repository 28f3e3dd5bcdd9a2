"""`joulie demo` and `joulie tour`: options and screens. `joulie.demo` runs the cluster that is shown."""
