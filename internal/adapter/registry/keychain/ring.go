package keychain

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// The hosts of Docker Hub: as in image names, and as in "docker login".
const (
	hubHost  = "docker.io"
	hubLogin = "index.docker.io"
)

// ring holds credentials by place.
type ring struct{ entries []entry }

type entry struct {
	place      string // "registry.example:5000/team"; each label of the host may contain *
	credential Credential
}

// login is one entry of Docker's configuration.
type login struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// config is the part of Docker's configuration about credentials.
type config struct {
	Auths       map[string]login  `json:"auths"`
	CredsStore  string            `json:"credsStore"`
	CredHelpers map[string]string `json:"credHelpers"`
}

// errNoConfig means that a text isn't a Docker configuration. It doesn't quote the text, which
// is a secret.
var errNoConfig = errors.New("is not the JSON that \"docker login\" writes")

// addConfig adds the content of ~/.docker/config.json, or of the key .dockerconfigjson.
func (r *ring) addConfig(text []byte) (config, error) {
	var c config
	if json.Unmarshal(text, &c) != nil {
		return config{}, errNoConfig
	}
	return c, r.addLogins(c.Auths)
}

// addLegacy adds the content of ~/.dockercfg, or of the key .dockercfg.
func (r *ring) addLegacy(text []byte) error {
	var logins map[string]login
	if json.Unmarshal(text, &logins) != nil {
		return errNoConfig
	}
	return r.addLogins(logins)
}

func (r *ring) addLogins(logins map[string]login) error {
	const most = 3 // errors
	var errs []error
	for _, place := range slices.Sorted(maps.Keys(logins)) {
		credential, err := logins[place].credential()
		if err != nil {
			if len(errs) < most {
				errs = append(errs, fmt.Errorf("credentials for %.100s: %w", place, err))
			}
			continue
		}
		if credential != (Credential{}) { // "docker login" with a helper leaves an empty entry behind.
			r.entries = append(r.entries, entry{normalPlace(place), credential})
		}
	}
	return errors.Join(errs...)
}

func (l login) credential() (Credential, error) {
	c := Credential{Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken}
	if l.Auth == "" {
		return c, nil
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(l.Auth, "="))
	user, password, found := strings.Cut(strings.TrimRight(string(text), "\x00"), ":")
	if err != nil || !found {
		return Credential{}, errors.New("auth is not base64 of user:password")
	}
	c.Username, c.Password = user, password
	return c, nil
}

// normalPlace drops the scheme and the registry API version.
func normalPlace(place string) string {
	place = strings.TrimPrefix(strings.TrimPrefix(place, "https://"), "http://")
	host, rest, _ := strings.Cut(place, "/")
	rest = strings.TrimSuffix(rest, "/") + "/"
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "v1/"), "v2/")
	return strings.TrimRight(host+"/"+rest, "/")
}

// find lists the credentials for a repository as the kubelet does: from the longest place to the
// shortest. For Docker Hub it falls back to the login entry.
func (r *ring) find(repository tagspec.Repository) []Credential {
	found := r.matching(func(place string) bool { return covers(place, repository) })
	if len(found) == 0 && repository.Host == hubHost {
		found = r.matching(func(place string) bool { return place == hubLogin })
	}
	return found
}

func (r *ring) matching(match func(place string) bool) []Credential {
	entries := slices.DeleteFunc(slices.Clone(r.entries), func(e entry) bool { return !match(e.place) })
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(b.place, a.place) })
	found := make([]Credential, len(entries))
	for i, e := range entries {
		found[i] = e.credential
	}
	return found
}

// covers reports whether a place matches a repository: the host has as many labels, each label
// matches, the port is the same, and the path begins with the place's path.
func covers(place string, repository tagspec.Repository) bool {
	host, under, _ := strings.Cut(place, "/")
	if !strings.HasPrefix(repository.Path, under) {
		return false
	}
	name, port := splitPort(host)
	wantName, wantPort := splitPort(repository.Host)
	if port != wantPort {
		return false
	}
	if strings.HasPrefix(wantName, "[") { // an IPv6 address; as a pattern, the brackets would be a character class
		return name == wantName
	}
	labels, wantLabels := strings.Split(name, "."), strings.Split(wantName, ".")
	if len(labels) != len(wantLabels) {
		return false
	}
	for i, label := range labels {
		if ok, err := path.Match(label, wantLabels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// splitPort separates the port. The brackets of an IPv6 address stay with the name.
func splitPort(host string) (name, port string) {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 || strings.HasSuffix(host, "]") {
		return host, ""
	}
	return host[:colon], host[colon+1:]
}
