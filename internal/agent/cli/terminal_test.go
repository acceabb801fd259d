package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// TestHostileStatus: what sources and programs wrote doesn't control the terminal, and makes up no
// line of the table. What a program printed may have several lines.
func TestHostileStatus(t *testing.T) {
	t.Parallel()
	show := func(text, printed string) string {
		var out bytes.Buffer
		s := podsync.Status{Message: text, Rejected: text, CheckOutput: printed, Sources: []podsync.SourceStatus{{Name: text, Failure: text}}}
		if err := printStatus(commandline.NewScreen(&out), s); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	hostile := "x\x1b[2J\r\nhealthy\t\u202e" + strings.Repeat("y", 10_000)
	got, harmless := show(hostile, "one\x1b[2J\ntwo"), show("x", "one\ntwo")
	if !commandline.IsPlain([]byte(got)) || strings.Count(got, "\n") != strings.Count(harmless, "\n") || !strings.Contains(got, "one�[2J\ntwo") {
		t.Errorf("%.2000q\nand of harmless text\n%s", got, harmless)
	}
}
