// Package manifest renders the plain installation from the chart, for those who install with
// kubectl alone. It needs Helm.
package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// namespace is where the manifest installs the controller.
const namespace = "lockstep-system"

// object makes the namespace, which Helm makes by itself.
const object = `---
apiVersion: v1
kind: Namespace
metadata:
  name: ` + namespace + "\n"

// Source is what a manifest is made from.
type Source struct {
	// Helm is the path of the program.
	Helm string
	// Chart is a directory or a package.
	Chart string
	// Tag is that of the image; empty for the chart's own. The registry stays for the reader to name.
	Tag string
	// Heading is a comment at the beginning, with its number signs.
	Heading string
}

// Render returns what the chart renders by default, without what only Helm needs.
func (s Source) Render(ctx context.Context) ([]byte, error) {
	helm := exec.CommandContext(ctx, s.Helm, "template", "lockstep", s.Chart,
		"--namespace", namespace, "--set", "image.repository=registry.example/lockstep", "--set-string", "image.tag="+s.Tag)
	rendered, err := helm.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("render %s: %w: %s", s.Chart, err, strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", s.Chart, err)
	}
	return slices.Concat([]byte(s.Heading), []byte(object), plain(rendered)), nil
}

// plain takes out what only Helm needs, and what it says of itself.
func plain(rendered []byte) []byte {
	helm := regexp.MustCompile(`(?m)^(# Source: .*| *app\.kubernetes\.io/(managed-by|instance): .*| *helm\.sh/chart: .*)\n`)
	return bytes.ReplaceAll(helm.ReplaceAll(rendered, nil), []byte("\n\n---"), []byte("\n---"))
}
