// Command release makes the container images of the product and pushes them, and makes
// all files of a release. "make images", "make push" and "make release" call it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/lockstep-dev/lockstep/release/bundle"
	"github.com/lockstep-dev/lockstep/release/images"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are the Makefile's settings.
type options struct {
	image  string
	out    string
	helm   string
	source images.Source
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("usage: release images|push|bundle [flags]")
	}
	o, err := parse(args[0], args[1:], stderr)
	if err != nil {
		return err
	}
	shown := newProgress(stderr)
	defer shown.stop()
	switch args[0] {
	case "images":
		return o.makeImages(ctx, stdout, shown)
	case "push":
		return o.push(ctx, stdout, shown)
	case "bundle":
		return o.bundle(ctx, stdout, shown)
	}
	return fmt.Errorf("unknown command %q: want images, push or bundle", args[0])
}

// parse parses the flags of a command. Without these flags, a bundle finds its version, and
// derives its directory from it.
func parse(command string, args []string, stderr io.Writer) (options, error) {
	var o options
	var created string
	out, version := "dist/images", "dev"
	if command == "bundle" {
		out, version = "", ""
	}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.image, "image", "", "registry and repository of the controller's image; the others lie beside it")
	flags.StringVar(&o.out, "out", out, "directory of the OCI layout, or of the files of a release, which is replaced")
	flags.StringVar(&o.helm, "helm", "helm", "the Helm program, which packages the charts")
	flags.StringVar(&o.source.Root, "source", ".", "directory of the checkout")
	flags.StringVar(&o.source.Version, "version", version, "version, and tag of the images")
	flags.StringVar(&o.source.Revision, "revision", "", "commit")
	flags.StringVar(&created, "created", "0", "time of the commit, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	seconds, err := strconv.ParseInt(created, 10, 64)
	if err != nil {
		return options{}, fmt.Errorf("SOURCE_DATE_EPOCH=%s: want seconds since 1970", created)
	}
	o.source.Created = time.Unix(seconds, 0)
	return o, nil
}

// makeImages writes the layout and prints its content.
func (o options) makeImages(ctx context.Context, stdout io.Writer, progress *progress) error {
	built, err := o.build(ctx, progress)
	if err != nil {
		return err
	}
	for _, image := range built {
		digest, err := image.Index.Digest()
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s %s\n", digest, image.Name)
	}
	fmt.Fprintf(stdout, "%d images are in %s, an OCI layout; \"make push IMAGE=registry.example/team/lockstep\" pushes them\n", len(built), o.out)
	return nil
}

func (o options) build(ctx context.Context, progress *progress) ([]images.Built, error) {
	// Check first: compiling takes minutes.
	if err := images.CheckLayout(o.out); err != nil {
		return nil, err
	}
	progress.say("Both programs are compiled for linux/amd64 and linux/arm64: about 10 minutes the first time on two cores, later only what has changed.")
	built, err := o.source.Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	if err := images.WriteLayout(o.out, built); err != nil {
		return nil, err
	}
	return images.ReadLayout(o.out)
}

// bundle makes all files of a release, and prints where they are.
func (o options) bundle(ctx context.Context, stdout io.Writer, progress *progress) error {
	if o.source.Version == "" {
		tag, err := bundle.Tagged(ctx, o.source.Root)
		if err != nil {
			return err
		}
		o.source.Version = tag
	}
	if o.out == "" {
		o.out = filepath.Join("dist", o.source.Version)
	}
	release := bundle.Bundle{Source: o.source, Dir: o.out, Helm: o.helm, Progress: progress}
	if err := release.Check(); err != nil {
		return err
	}
	progress.say("The programs are compiled for linux and darwin, amd64 and arm64: about 20 minutes the first time on two cores, later only what has changed.")
	names, err := release.Make(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintln(stdout, filepath.Join(o.out, name))
	}
	return nil
}

// push checks the registry first, because compiling takes minutes.
func (o options) push(ctx context.Context, stdout io.Writer, progress *progress) error {
	target, err := images.ParseTarget(o.image, o.source.Version)
	if err != nil {
		return err
	}
	pusher := images.Pusher{Target: target, Keychain: authn.DefaultKeychain, Progress: progress}
	if err := pusher.Check(ctx); err != nil {
		return err
	}
	built, err := o.build(ctx, progress)
	if err != nil {
		return err
	}
	pushed, err := pusher.Push(ctx, built)
	if err != nil {
		return err
	}
	for _, image := range pushed {
		fmt.Fprintln(stdout, image.Reference)
	}
	fmt.Fprintf(stdout, "\nThis installs the controller; in the place of another program, put the reference with its name above into its manifest:\n\n  %s\n",
		install(pushed[0].Reference))
	return nil
}

// install is the command that installs the controller with an image by its digest:
// REPOSITORY:TAG@DIGEST.
func install(reference string) string {
	tagged, digest, _ := strings.Cut(reference, "@")
	repository := tagged[:strings.LastIndex(tagged, ":")]
	return fmt.Sprintf("helm upgrade --install lockstep charts/lockstep --namespace lockstep-system --create-namespace --set image.repository=%s,image.digest=%s", repository, digest)
}
