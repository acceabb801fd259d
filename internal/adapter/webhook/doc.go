// Package webhook is the HTTP endpoint at which registries tell of pushes. What is not
// proven to come from someone who knows a secret does nothing.
package webhook
