//go:build !linux

package main

import "errors"

// shield fails here: there are no mount namespaces.
func shield() error { return errors.New("a node needs Linux") }
