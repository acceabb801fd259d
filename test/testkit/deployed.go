package testkit

import (
	"fmt"
	"strings"
	"testing"
)

// MakeDeployed creates a Deployment of the controller with these flags in the installation's
// namespace, for programs that read its arguments. It doesn't run pods.
func (w *World) MakeDeployed(t testing.TB, name string, flags ...string) {
	t.Helper()
	own := *w
	own.Namespace = w.Own
	own.Make(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {schedulerName: none, containers: [{name: lockstep, image: registry.example/lockstep, args: ["%[2]s"]}]}
`, name, strings.Join(append([]string{"controller"}, flags...), `", "`)))
}
