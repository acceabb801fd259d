// Package ui_test opens the pages of "lockstep ui" in a real browser, on a real control plane.
package ui_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/browser"
	"github.com/lockstep-dev/lockstep/test/inprocess"
)

func TestMain(m *testing.M) { inprocess.Main(m, 6, browser.CloseShared) }
