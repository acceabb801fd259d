// Package notices_test sends notifications to real HTTP listeners while the controller rolls out
// workloads on a real control plane, and to a real Alertmanager.
package notices_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/inprocess"
)

func TestMain(m *testing.M) { inprocess.Main(m, 4) }
