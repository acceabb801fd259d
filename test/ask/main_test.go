// Package ask_test brings the controller into every situation that has a reason, and sees
// that "lockstep explain" and "lockstep status" say the same of it as the controller.
package ask_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/inprocess"
)

func TestMain(m *testing.M) { inprocess.Main(m, 8) }
