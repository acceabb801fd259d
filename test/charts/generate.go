// Package charts renders the charts with the real Helm program and shows the outcome
// to a real API server. It has only tests.
package charts

//go:generate go run ./readme ../../charts/app
//go:generate go run ./readme ../../charts/lockstep
//go:generate go run ./manifests
