// Package monitoring_test holds the alerts and the dashboard against promtool, and against a
// real Prometheus that scrapes a real controller.
package monitoring_test

import (
	"os"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

func TestMain(m *testing.M) { os.Exit(labtest.RunTests(m)) }
