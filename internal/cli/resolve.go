package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/identity"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// maxTagsFile limits a list of tags.
const maxTagsFile = 64 << 20

// resolveOptions are the flags of "lockstep resolve".
type resolveOptions struct {
	platform     string
	tagsFrom     string
	output       string
	dockerConfig string
	ca           string
	plainHTTP    bool
	identities   bool
	timeout      time.Duration
}

func newResolve(env Environment) *cobra.Command {
	var o resolveOptions
	cmd := &cobra.Command{
		Use:   "resolve REPOSITORY:SPEC",
		Short: "Find the tag and the digest that match an image spec",
		Long: `Find the newest tag that matches a spec, and its digest. The command prints the image as
Lockstep writes it into a container: repository:tag@sha256:…

A SPEC is one of these:

    1.34.2           this tag
    1.34.*           * stands for digits; the highest number wins, 10 before 9
    v*.*             several numbers are compared from left to right
    ^1.4  ~2.1       a range of semantic versions; ">=1 <3" needs quotes
    >=1.4.0-0        a range that names a pre-release includes all of them
    /rel-(?P<n>\d+)/ a regular expression (RE2) for the whole tag; its named groups
                     are compared, digits as numbers; without one, the whole tag

The digest is that of the index, so every node finds its platform. With --platform it is that of
the image for one platform.

Credentials come from Docker's configuration ("docker login"), and from the cloud for AWS, Google
and Azure registries. With --tags-from, the command doesn't query a registry, and prints the
chosen tag. The file contains one tag per line, or the response of /v2/<name>/tags/list.

Standard output contains only the result, and standard error only errors. On a terminal, the
command also shows the progress of a long list.

Exit codes: 0 found; 1 not found, or the registry refused; 2 wrong usage.`,
		Example: `  lockstep resolve registry.k8s.io/pause:3.*
  lockstep resolve 'ghcr.io/team/app:^1.4' --output digest
  lockstep resolve localhost:5000/app:latest --plain-http --platform linux/arm64

  # which tag would it be?
  printf '1.4.0\n1.10.0\n1.9.2\n' | lockstep resolve app:1.*.* --tags-from -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("name one image, such as registry.example/app:1.4.*")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args[0], env)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.platform, "platform", "", "the digest of the image for one platform, such as linux/arm64 or linux/arm/v7")
	fs.StringVar(&o.tagsFrom, "tags-from", "", "a file with tags to choose from, instead of a registry; - for standard input")
	fs.StringVarP(&o.output, "output", "o", "image", "what to print: image (repository:tag@digest), digest or tag")
	fs.StringVar(&o.dockerConfig, "docker-config", "", "Docker configuration file (default config.json in $DOCKER_CONFIG or ~/.docker)")
	fs.StringVar(&o.ca, "registry-ca", "", "a file with additional trusted certificates (PEM)")
	fs.BoolVar(&o.plainHTTP, "plain-http", false, "query the registry without TLS")
	fs.BoolVar(&o.identities, "cloud-identity", true, "get credentials for an AWS, Google or Azure registry from the cloud")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "maximum time")
	return cmd
}

func (o *resolveOptions) run(cmd *cobra.Command, text string, env Environment) error {
	image, err := tagspec.ParseImage(text)
	if err != nil {
		return usageError{err}
	}
	if o.output != "image" && o.output != "digest" && o.output != "tag" {
		return usageError{fmt.Errorf("--output %q: want image, digest or tag", o.output)}
	}
	if o.timeout <= 0 {
		return usageError{fmt.Errorf("--timeout %s: must be positive", o.timeout)}
	}
	if o.tagsFrom != "" {
		return o.offline(image, cmd.InOrStdin(), env.Stdout)
	}
	question, err := o.question(image, env)
	if err != nil {
		return usageError{err}
	}
	host, err := o.host()
	if err != nil {
		return usageError{err}
	}
	shown := newListing(env.Stderr)
	resolver := imagewatch.New(imagewatch.Options{Registries: registry.Options{
		Hosts: map[string]registry.Host{image.Repository.Host: host}, UserAgent: "lockstep/" + env.Version, Listed: shown.page,
	}})
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("not within %s", o.timeout))
	defer cancel()
	found, err := resolver.Resolve(ctx, question)
	shown.end()
	if err != nil {
		return resolveAdvice(err, image.Repository.Host)
	}
	return o.print(env.Stdout, image, found)
}

func (o *resolveOptions) print(to io.Writer, image tagspec.Image, found imagewatch.Resolution) error {
	text := image.Repository.Written + ":" + found.Tag + "@" + found.Digest
	switch o.output {
	case "digest":
		text = found.Digest
	case "tag":
		text = found.Tag
	}
	return say(to, "%s", text)
}

func (o *resolveOptions) question(image tagspec.Image, env Environment) (imagewatch.Question, error) {
	q := imagewatch.Question{Repository: image.Repository, Spec: image.Spec}
	chain := keychain.Chain{keychain.File{Path: o.dockerConfigFile(env), Named: o.dockerConfig != ""}}
	if o.identities {
		chain = append(chain, identity.All()...)
	}
	q.Credentials = chain
	if o.platform == "" {
		return q, nil
	}
	platform, err := registry.ParsePlatform(o.platform)
	q.Platforms, q.Child = append(q.Platforms, platform), true
	return q, err
}

func (o *resolveOptions) dockerConfigFile(env Environment) string {
	if o.dockerConfig != "" {
		return o.dockerConfig
	}
	if dir, ok := env.Lookup("DOCKER_CONFIG"); ok && dir != "" {
		return filepath.Join(dir, "config.json")
	}
	home, _ := env.Lookup("HOME")
	return filepath.Join(home, ".docker", "config.json")
}

func (o *resolveOptions) host() (registry.Host, error) {
	host := registry.Host{PlainHTTP: o.plainHTTP}
	if o.ca == "" {
		return host, nil
	}
	text, err := os.ReadFile(o.ca)
	if err != nil {
		return registry.Host{}, fmt.Errorf("--registry-ca: %w", err)
	}
	host.CA = text
	return host, nil
}

// starHint is for users who expect a star to match anything.
func starHint(s tagspec.Spec) string {
	if !strings.Contains(s.String(), "*") || strings.HasPrefix(s.String(), "/") {
		return ""
	}
	return "; a star stands for digits: 1.* matches 1.4 but not 1.4.2, which 1.4.*, 1.*.* and ^1 match"
}

// offline chooses from a list of tags.
func (o *resolveOptions) offline(image tagspec.Image, stdin io.Reader, stdout io.Writer) error {
	text, err := readTags(o.tagsFrom, stdin)
	if err != nil {
		return usageError{fmt.Errorf("--tags-from: %w", err)}
	}
	tags := strings.Fields(string(text))
	var answer struct{ Tags []string }
	if json.Unmarshal(text, &answer) == nil {
		tags = answer.Tags
	}
	tag, ok := image.Spec.Choose(tags)
	if !ok {
		return fmt.Errorf("none of %d tags matches %s%s", len(tags), image.Spec, starHint(image.Spec))
	}
	return say(stdout, "%s", tag)
}

func readTags(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxTagsFile))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxTagsFile))
}

// resolveAdvice replaces the advice for a workload's owner with advice for a user at a terminal.
func resolveAdvice(err error, host string) error {
	e, ok := errors.AsType[*registry.Error](err)
	if !ok {
		return err
	}
	advised := *e
	switch e.Kind {
	case registry.Denied:
		advised.Advice = fmt.Sprintf("log in with \"docker login %s\" or name a file with --docker-config, and check that the repository exists", host)
	case registry.Unreachable:
		advised.Advice = "check the name and the network; --plain-http and --registry-ca are for registries without a public certificate"
	case registry.NoMatch:
		advised.Advice = "try other specs with --tags-from"
	case registry.Limited, registry.Broken:
		advised.Advice = "try again later"
		if !e.Until.IsZero() {
			advised.Advice = "try again after " + e.Until.Local().Format(time.TimeOnly)
		}
	default:
	}
	return &advised
}
