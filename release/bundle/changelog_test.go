package bundle_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/release/bundle"
	"github.com/lockstep-dev/lockstep/release/tinysource"
)

// TestChangelogForm: the changelog of this repository, and what is refused.
func TestChangelogForm(t *testing.T) {
	t.Parallel()
	ours, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	const top, links = "# Changelog\n\n## [Unreleased]\n\n", "\n[0.2.0]: https://example.test/2\n[0.1.0]: https://example.test/1\n[9.9.9]: https://example.test/9\n"
	const newer, older = "## [0.2.0] - 2026-02-01\n\n### Fixed\n\n- b\n", "## [0.1.0] - 2026-01-01\n\n- a\n"
	for name, c := range map[string]struct{ text, want string }{
		"ours":            {string(ours), "has no section for v9.9.9"},
		"two versions":    {top + newer + older + links, "has no section for v9.9.9"},
		"this version":    {top + "## [9.9.9] - 2026-03-01\n\n- c\n" + newer + links, ""},
		"no Unreleased":   {newer + older + links, `want the section "## [Unreleased]" first`},
		"empty":           {"", `want the section "## [Unreleased]" first`},
		"wrong order":     {top + older + newer + links, "0.2.0 comes after 0.1.0"},
		"twice":           {top + newer + newer + links, "0.2.0 comes after 0.2.0"},
		"Unreleased last": {top + newer + "## [Unreleased]\n" + links, "Unreleased comes after 0.2.0"},
		"no date":         {top + "## [0.1.0]\n\n- a\n" + links, `the date ""`},
		"another date":    {top + "## [0.1.0] - 1.2.2026\n\n- a\n" + links, `the date "1.2.2026"`},
		"no such day":     {top + "## [0.1.0] - 2026-02-30\n\n- a\n" + links, `the date "2026-02-30"`},
		"times go back":   {top + "## [0.2.0] - 2025-02-01\n\n- b\n" + older + links, "0.2.0 is of 2025-02-01"},
		"with a v":        {top + "## [v0.1.0] - 2026-02-01\n\n- a\n" + "[v0.1.0]: https://example.test\n", `"v0.1.0" is no version`},
		"no brackets":     {top + "## 0.1.0 - 2026-02-01\n\n- a\n" + links, `heading "0.1.0 - 2026-02-01"`},
		"own group":       {top + "## [0.1.0] - 2026-02-01\n\n### News\n\n- a\n" + links, `the group "News"`},
		"says nothing":    {top + "## [0.1.0] - 2026-02-01\n\n" + older + links, "says nothing"},
		"no link":         {top + newer, "0.2.0 has no link"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes, err := bundle.Notes(c.text, "v9.9.9")
			switch {
			case c.want == "" && (err != nil || notes != "- c\n"):
				t.Errorf("notes %q, error %v", notes, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestTagged: only the commit of a tag, with nothing changed, has a version.
func TestTagged(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.test"}, args...)...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	refused := func(want string) {
		t.Helper()
		if tag, err := bundle.Tagged(t.Context(), root); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "VERSION=") {
			t.Errorf("tag %q, error %v, want one with %q and what to do", tag, err, want)
		}
	}
	tinysource.Write(t, filepath.Join(root, "a"), "1")
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	refused("this commit has none")
	git("tag", "latest")
	refused("this commit has none")
	git("tag", "v0.1.0")
	if tag, err := bundle.Tagged(t.Context(), root); err != nil || tag != "v0.1.0" {
		t.Errorf("tag %q, error %v", tag, err)
	}
	tinysource.Write(t, filepath.Join(root, "b"), "new")
	refused("git status shows changes (1)")
	git("add", ".")
	git("commit", "-q", "-m", "two")
	refused("this commit has none")
}
