// Package install installs Lockstep with its chart, as users do: every combination of
// capabilities, with exactly the permissions that it renders, and from one version to the next. It
// has only tests.
package install
