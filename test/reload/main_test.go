// Package reload_test runs the controller through what is promised of following
// ConfigMaps and Secrets.
package reload_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/inprocess"
)

func TestMain(m *testing.M) { inprocess.Main(m, 8) }
