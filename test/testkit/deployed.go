package testkit

import (
	"fmt"
	"strings"
	"testing"
)

// MakeDeployed makes a Deployment of the controller with these flags in the namespace of the
// installation, for those who read its arguments. Nothing runs in its pods.
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
