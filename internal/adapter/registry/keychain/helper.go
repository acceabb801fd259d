package keychain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// helperTimeout limits a credential helper, which may wait for user input.
const helperTimeout = 30 * time.Second

// ask runs the credential helper for a repository's registry, if there is one. Docker's own
// library for this doesn't take a context and repeats the helper's output in its errors.
func (c config) ask(ctx context.Context, repository tagspec.Repository) (Credential, error) {
	server := repository.Host
	if server == hubHost {
		server = "https://" + hubLogin + "/v1/"
	}
	helper := cmp.Or(c.CredHelpers[repository.Host], c.CredHelpers[server], c.CredsStore)
	if helper == "" {
		return Credential{}, nil
	}
	if helper != filepath.Base(helper) {
		return Credential{}, fmt.Errorf("credential helper %q: isn't the name of a program", helper)
	}
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "docker-credential-"+helper, "get") //nolint:gosec // The user's own configuration names it, as for Docker.
	command.Stdin = strings.NewReader(server)
	out, err := command.Output()
	// Helpers report this on stdout, and exit with an error.
	if strings.Contains(string(out), "credentials not found") {
		return Credential{}, nil
	}
	if err != nil {
		return Credential{}, fmt.Errorf("run docker-credential-%s: %w", helper, err)
	}
	var found struct{ Username, Secret string }
	if json.Unmarshal(out, &found) != nil {
		return Credential{}, errors.New("docker-credential-" + helper + " did not answer with JSON")
	}
	if found.Username == "<token>" {
		return Credential{IdentityToken: found.Secret}, nil
	}
	return Credential{Username: found.Username, Password: found.Secret}, nil
}
