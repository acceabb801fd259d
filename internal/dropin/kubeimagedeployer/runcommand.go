package kubeimagedeployer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// RunCommand replaces kube-image-deployer-cli: it prints only the digest of an image on standard
// output.
func RunCommand(ctx context.Context, args []string, env run.Environment) int {
	c, err := ParseCommand(args, env.Stderr)
	if usage, wrong := errors.AsType[UsageError](err); wrong {
		if usage.IsHelp() {
			return commandline.ExitOK
		}
		return commandline.ExitUsage
	}
	if err != nil {
		_, _ = fmt.Fprintln(env.Stderr, "Error:", err)
		return commandline.ExitUsage
	}
	image, err := resolveAsBefore(ctx, c, env)
	if err != nil {
		_, _ = fmt.Fprintln(env.Stderr, "Error:", err)
		return commandline.ExitFailed
	}
	_, _ = fmt.Fprintln(env.Stdout, image)
	return commandline.ExitOK
}

func resolveAsBefore(ctx context.Context, c Command, env run.Environment) (string, error) {
	const limit = 5 * time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	question := imagewatch.Question{Repository: c.Image.Repository, Spec: c.Image.Spec, Credentials: credentials(env)}
	if c.Platform != "" {
		platform, err := registry.ParsePlatform(c.Platform)
		if err != nil {
			return "", err
		}
		question.Platforms, question.Child = append(question.Platforms, platform), true
	}
	resolver := imagewatch.New(imagewatch.Options{Registries: registry.Options{Local: IsLocal, UserAgent: "lockstep/" + env.Version}})
	found, err := resolver.Resolve(ctx, question)
	if err != nil {
		return "", err
	}
	return c.Image.Repository.Written + "@" + found.Digest, nil
}
