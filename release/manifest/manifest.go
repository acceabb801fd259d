// Package manifest renders the plain installation from the chart, for users who install with
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

// object creates the namespace, which Helm creates by itself.
const object = `---
apiVersion: v1
kind: Namespace
metadata:
  name: ` + namespace + "\n"

// Source describes the input of a manifest.
type Source struct {
	// Helm is the path of the program.
	Helm string
	// Chart is a directory or a package.
	Chart string
	// Tag is the image tag; empty for the chart's own. The user has to set the registry.
	Tag string
	// Heading is a comment at the beginning, including its number signs.
	Heading string
}

// Render renders the chart with its defaults, without the parts that only Helm needs.
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

// plain removes the parts that only Helm needs, and its own comments.
func plain(rendered []byte) []byte {
	helm := regexp.MustCompile(`(?m)^(# Source: .*| *app\.kubernetes\.io/(managed-by|instance): .*| *helm\.sh/chart: .*)\n`)
	return bytes.ReplaceAll(helm.ReplaceAll(rendered, nil), []byte("\n\n---"), []byte("\n---"))
}
