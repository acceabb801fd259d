// Package safe_test plays changes that go wrong, or that users hold back, to the controller on a
// real control plane: what reaches how many workloads, in which order, and what stops it. The
// Deployment controller counts pods that package kubelet reports.
package safe_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/inprocess"
)

func TestMain(m *testing.M) { inprocess.Main(m, 12) }
