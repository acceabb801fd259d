package main

import "testing"

// TestInstallCommand: a registry may have a port, which is no tag.
func TestInstallCommand(t *testing.T) {
	t.Parallel()
	const want = "helm upgrade --install lockstep charts/lockstep --namespace lockstep-system --create-namespace --set image.repository=localhost:5001/team/lockstep,image.digest=sha256:8d1c"
	if got := install("localhost:5001/team/lockstep:v0.1.0@sha256:8d1c"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
