// Package apps tests the built agent with real applications from Debian's packages. Each
// application has one test, which plays all its scenarios one after the other: from a good
// configuration to a bad one and back. The tests look at the application itself.
package apps
