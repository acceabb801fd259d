package bundle

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Tagged is the version of a checkout: the tag of its commit. A checkout that differs from
// the tagged commit has none, and the error explains what to do.
func Tagged(ctx context.Context, root string) (string, error) {
	const give = "or say VERSION=v0.1.0 to make one from what is here"
	changed, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", fmt.Errorf("a release is made from a commit, and git status shows changes (%d): commit or stash them, %s", len(strings.Split(changed, "\n")), give)
	}
	tag, err := git(ctx, root, "describe", "--tags", "--exact-match", "--match", "v*")
	if err != nil {
		return "", fmt.Errorf("a release is made from a tag, and this commit has none: git tag v0.1.0, %s", give)
	}
	return tag, nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// number is a version without its v, as in charts and in the changelog.
func number(version string) (string, error) {
	text, hasV := strings.CutPrefix(version, "v")
	parsed, err := semver.StrictNewVersion(text)
	if !hasV || err != nil || parsed.Metadata() != "" {
		return "", fmt.Errorf("VERSION=%s: want a v and a semantic version, such as v0.1.0 or v0.2.0-rc.1", version)
	}
	return text, nil
}
