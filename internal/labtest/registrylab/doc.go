// Package registrylab runs a real registry (distribution) for tests and benchmarks of
// those who ask registries: with TLS, token authentication and pages. In front of it is
// a proxy that counts requests and can spoil them. The token server is this package's
// own; the registry checks what it signs.
package registrylab
