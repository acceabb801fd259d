package images_test

import (
	"archive/tar"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/release/images"
)

const zones = "usr/share/zoneinfo/"

// wantZones: the controller's images contain readable time zones and nothing else in that place. The agent contains them in the program.
func wantZones(t *testing.T, program string, files map[string]entry) {
	t.Helper()
	found := 0
	for name, f := range files {
		zone, ok := strings.CutPrefix(name, zones)
		if !ok || f.header.Typeflag == tar.TypeDir {
			continue
		}
		found++
		if _, err := time.LoadLocationFromTZData(zone, f.content); err != nil || f.header.Mode != 0o644 || f.header.Linkname != "" {
			t.Errorf("%s has the mode %o and isn't a readable time zone: %v", name, f.header.Mode, err)
		}
	}
	if program != images.Controller {
		if found > 0 {
			t.Errorf("%s has %d time zones beside those in the program", program, found)
		}
		return
	}
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"} {
		if _, ok := files[zones+zone]; !ok {
			t.Errorf("the time zone %s is missing; there are %d", zone, found)
		}
	}
}
