// Command hostpush pushes the images of a release, as "make push" does, with programs that
// are already built for this machine. It puts them into the images of every platform, of
// which a node here pulls one: compiling for the others would take minutes.
//
//	hostpush IMAGE VERSION LOCKSTEP LOCKSTEP-SYNC
//
// It prints the references.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/lockstep-dev/lockstep/release/images"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("usage: hostpush IMAGE VERSION LOCKSTEP LOCKSTEP-SYNC")
	}
	target, err := images.ParseTarget(args[0], args[1])
	if err != nil {
		return err
	}
	programs := images.Compiled{images.Controller: args[2], images.Agent: args[3]}
	compiled := make([]images.Compiled, len(images.Platforms()))
	for i := range compiled {
		compiled[i] = programs
	}
	source := images.Source{Root: ".", Version: args[1], Created: time.Unix(0, 0)}
	built, err := source.Pack(ctx, compiled, images.Silent{})
	if err != nil {
		return err
	}
	pushed, err := images.Pusher{Target: target, Keychain: authn.DefaultKeychain, Progress: images.Silent{}}.Push(ctx, built)
	if err != nil {
		return err
	}
	for _, image := range pushed {
		fmt.Println(image.Reference)
	}
	return nil
}
