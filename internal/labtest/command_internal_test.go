package labtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	args := []string{"--token", "abc", "--password=def", "--port=0", "--token"}
	want := []string{"--token", "…", "--password=…", "--port=0", "--token"}
	if diff := cmp.Diff(want, withoutSecrets(args)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if args[1] != "abc" {
		t.Error("the command line itself was changed")
	}
}
