package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
)

// runKubeImageDeployerCLI takes the place of kube-image-deployer-cli: it prints the digest
// of an image on the standard output, and nothing else.
func runKubeImageDeployerCLI(ctx context.Context, args []string, env Environment) int {
	c, err := kubeimagedeployer.ParseCommand(args, env.Stderr)
	if usage, wrong := errors.AsType[kubeimagedeployer.UsageError](err); wrong {
		if usage.IsHelp() {
			return exitOK
		}
		return exitUsage
	}
	if err != nil {
		_, _ = fmt.Fprintln(env.Stderr, "Error:", err)
		return exitUsage
	}
	image, err := resolveAsBefore(ctx, c, env)
	if err != nil {
		_, _ = fmt.Fprintln(env.Stderr, "Error:", err)
		return exitFailed
	}
	_, _ = fmt.Fprintln(env.Stdout, image)
	return exitOK
}

func resolveAsBefore(ctx context.Context, c kubeimagedeployer.Command, env Environment) (string, error) {
	const limit = 5 * time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	question := registry.Question{Repository: c.Image.Repository, Spec: c.Image.Spec, Credentials: deployerCredentials(env)}
	if c.Platform != "" {
		platform, err := registry.ParsePlatform(c.Platform)
		if err != nil {
			return "", err
		}
		question.Platforms, question.Child = append(question.Platforms, platform), true
	}
	resolver := registry.New(registry.Options{Local: kubeimagedeployer.IsLocal, UserAgent: "lockstep/" + env.Version})
	found, err := resolver.Resolve(ctx, question)
	if err != nil {
		return "", err
	}
	return c.Image.Repository.Written + "@" + found.Digest, nil
}
