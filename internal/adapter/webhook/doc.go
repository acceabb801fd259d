// Package webhook is the HTTP endpoint for push notifications of registries. It ignores requests
// that don't prove knowledge of a secret.
package webhook
