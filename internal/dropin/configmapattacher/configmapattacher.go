// Package configmapattacher replaces configmap-attacher: its flags, its environment, its log,
// and its error conditions.
package configmapattacher

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Name is the program's executable, and Short what it does.
const (
	Name  = "configmap-attacher"
	Short = "attach ConfigMaps to the newest ReplicaSet of an Argo Rollout"
)

// Invocation is a parsed command line and environment.
type Invocation struct {
	Rollout   string
	Namespace string
	// ConfigMaps without spaces, empty elements and duplicates.
	ConfigMaps []input.ID
	// Refused are the names that cannot be attached, with the reason.
	Refused []error
	// InCluster is false when the kubeconfig of the home directory should be used.
	InCluster bool
	Level     slog.Level
	// Version and JobName are only logged.
	Version, JobName string
}

// UsageError is a command line that lacks a flag. The program prints its flags and the error and
// exits with 1.
type UsageError struct{ Missing string }

// Error names the flag.
func (e UsageError) Error() string { return "flag -" + e.Missing + " is missing or empty" }

// Parse reads the arguments, with one dash or two, and the environment. It prints the flags on
// stderr when they cannot be parsed, and returns [flag.ErrHelp] when only help was requested.
func Parse(args []string, lookup func(string) (string, bool), stderr io.Writer) (Invocation, error) {
	var in Invocation
	fs := flag.NewFlagSet(Name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&in.Rollout, "rollout", "", "Rollout whose newest ReplicaSet becomes the owner")
	fs.StringVar(&in.Namespace, "namespace", "", "namespace of the Rollout and the ConfigMaps")
	list := fs.String("configmaps", "", "ConfigMaps that get the owner, separated by commas")
	if err := fs.Parse(args); err != nil {
		return Invocation{}, syntaxError{err}
	}
	in.readNames(*list)
	if missing := in.missing(); missing != "" {
		fs.PrintDefaults()
		err := UsageError{missing}
		_, _ = fmt.Fprintln(stderr, err) // like the flags above it
		return Invocation{}, err
	}
	return in, in.readEnvironment(lookup)
}

// syntaxError is a command line that Go's flag package refuses.
type syntaxError struct{ error }

func (e syntaxError) Unwrap() error { return e.error }

// ExitCode is what the program returns for an error of Parse.
func ExitCode(err error) int {
	var syntax syntaxError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &syntax):
		return 2
	}
	return 1
}

func (in *Invocation) missing() string {
	switch {
	case in.Rollout == "":
		return "rollout"
	case in.Namespace == "":
		return "namespace"
	case len(in.ConfigMaps)+len(in.Refused) == 0:
		return "configmaps"
	}
	return ""
}

// readNames splits the list. An invalid name is refused by itself, so the others are still
// attached.
func (in *Invocation) readNames(list string) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		source := input.ConfigMap(name)
		switch {
		case name == "" || slices.Contains(in.ConfigMaps, source):
		case strings.Contains(name, "/"):
			in.Refused = append(in.Refused, fmt.Errorf("attach ConfigMap %q: an owner must be in the same namespace as the object", name))
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			in.Refused = append(in.Refused, fmt.Errorf("attach ConfigMap %q: %s", name, validation.IsDNS1123Subdomain(name)[0]))
		default:
			in.ConfigMaps = append(in.ConfigMaps, source)
		}
	}
}

func (in *Invocation) readEnvironment(lookup func(string) (string, bool)) error {
	in.InCluster, in.Level = true, slog.LevelInfo
	in.Version, _ = lookup("VERSION")
	in.JobName, _ = lookup("JOB_NAME")
	if text, set := lookup("IS_IN_CLUSTER"); set {
		in.InCluster = false
		inCluster, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("environment variable IS_IN_CLUSTER=%q: want true or false", text)
		}
		in.InCluster = inCluster
	}
	if text, set := lookup("LOG_LEVEL"); set {
		level, ok := Levels()[strings.ToLower(text)]
		if !ok {
			return fmt.Errorf("environment variable LOG_LEVEL=%q: want trace, debug, info, warn, error, fatal or panic", text)
		}
		in.Level = level
	}
	return nil
}

// LevelFatal is the level of the line with which the program ends in failure.
const LevelFatal = slog.LevelError + 4

// Levels are the names that the program accepts.
func Levels() map[string]slog.Level {
	return map[string]slog.Level{
		"trace": slog.LevelDebug - 4, "debug": slog.LevelDebug, "info": slog.LevelInfo,
		"warn": slog.LevelWarn, "warning": slog.LevelWarn,
		"error": slog.LevelError, "fatal": LevelFatal, "panic": LevelFatal + 4,
	}
}

// LevelName is how the program writes a level.
func LevelName(level slog.Level) string {
	switch {
	case level >= LevelFatal:
		return "fatal"
	case level >= slog.LevelError:
		return "error"
	case level >= slog.LevelWarn:
		return "warning"
	case level >= slog.LevelInfo:
		return "info"
	}
	return "debug"
}
