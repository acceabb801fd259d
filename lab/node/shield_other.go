//go:build !linux

package main

import "errors"

// shield cannot be made here: there are no mount namespaces.
func shield() error { return errors.New("a node needs Linux") }
