// Package e2e runs the controller against a real control plane.
package e2e

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/inprocess"
)

func TestMain(m *testing.M) { inprocess.Main(m, 6) }
