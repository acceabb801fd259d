package kubeimagedeployer

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// CommandName is the executable of the command, and CommandShort what it does.
const (
	CommandName  = "kube-image-deployer-cli"
	CommandShort = "print the digest of a tag"
)

// Command is a parsed command line of kube-image-deployer-cli.
type Command struct {
	Image tagspec.Image
	// Platform is the one whose digest is printed, empty for the index.
	Platform string
}

// ParseCommand reads a command line of kube-image-deployer-cli.
func ParseCommand(args []string, output io.Writer) (Command, error) {
	fs := flag.NewFlagSet(CommandName, flag.ContinueOnError)
	fs.SetOutput(output)
	image := fs.String("image", "", "repository, such as registry.example/app")
	tag := fs.String("tag", "", "tag; each * stands for digits, and the highest numbers win")
	platform := fs.String("platform", "linux/amd64", "platform whose digest is printed; index prints that of every platform")
	if err := fs.Parse(args); err != nil {
		return Command{}, UsageError{err}
	}
	if *image == "" || *tag == "" {
		fs.Usage()
		return Command{}, UsageError{errors.New("image or tag is missing")}
	}
	var c Command
	var err error
	if c.Image, err = tagspec.ParseImage(*image + ":" + *tag); err != nil {
		return c, err
	}
	if c.Platform, err = ParsePlatform(*platform); err != nil {
		return c, fmt.Errorf("-platform: %w", err)
	}
	return c, nil
}
