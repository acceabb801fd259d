// Package registrylab runs a real registry (distribution) for tests and benchmarks of
// registry clients: with TLS, token authentication and pages. In front of it is a proxy that
// counts requests and can disrupt them. The token server is this package's own; the registry
// checks its signatures.
package registrylab
