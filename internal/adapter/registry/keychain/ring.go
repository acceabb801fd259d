package keychain

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
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

const (
	// MaxTried limits the credentials that are tried for a repository.
	MaxTried = 8
	// maxPlace limits the place of a login. The host and the path of a repository have at most 255 bytes
	// each.
	maxPlace = 1 << 10
)

// ring collects the credentials for one repository. It keeps one more than are tried, so the excess
// is noticed.
type ring struct {
	repository tagspec.Repository
	// found are sorted as the kubelet does, from the longest place to the shortest, and hub are those of
	// Docker Hub's login.
	found, hub []entry
}

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
	Auths       *ring             `json:"auths"`
	CredsStore  string            `json:"credsStore"`
	CredHelpers map[string]string `json:"credHelpers"`
}

// errNoConfig means that a text isn't a Docker configuration. It doesn't quote the text, which
// is a secret.
var errNoConfig = errors.New("is not the JSON that \"docker login\" writes")

// addConfig adds the content of the key .dockerconfigjson.
func (r *ring) addConfig(text []byte) error {
	return decode(text, &struct {
		Auths *ring `json:"auths"`
	}{r})
}

// addFile adds the content of ~/.docker/config.json, and returns what it says about helpers.
func (r *ring) addFile(text []byte) (config, error) {
	c := config{Auths: r}
	err := decode(text, &c)
	return c, err
}

// addLegacy adds the content of ~/.dockercfg, or of the key .dockercfg.
func (r *ring) addLegacy(text []byte) error { return decode(text, r) }

func decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if unusable, ok := errors.AsType[*unusableError](err); ok {
		return unusable.err
	}
	if err != nil {
		return errNoConfig
	}
	return nil
}

// unusableError reports some entries of a configuration. The others were added.
type unusableError struct{ err error }

func (e *unusableError) Error() string { return e.err.Error() }

// UnmarshalJSON adds the entries that are for the repository. It skips the others without decoding
// them: 1 MiB has room for 40,000.
func (r *ring) UnmarshalJSON(text []byte) error {
	const most = 3 // errors
	var errs []error
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(err, errNoConfig)
	}
	added := ring{r.repository, slices.Clone(r.found), slices.Clone(r.hub)}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name := key.(string) // The keys of a JSON object are strings.
		err = added.next(d, name)
		unusable, ok := errors.AsType[*unusableError](err)
		switch {
		case ok && len(errs) < most:
			errs = append(errs, fmt.Errorf("credentials for %.100s: %w", name, unusable.err))
		case !ok && err != nil:
			return err
		}
	}
	*r = added
	if len(errs) > 0 {
		return &unusableError{errors.Join(errs...)}
	}
	return nil
}

// next reads the next entry, and adds it if it is for the repository.
func (r *ring) next(d *json.Decoder, name string) error {
	place := normalPlace(name)
	list := &r.found
	if len(place) > maxPlace || !covers(place, r.repository) {
		list = &r.hub
		if place != hubLogin || r.repository.Host != hubHost {
			return d.Decode(&struct{}{})
		}
	}
	var l login
	if err := d.Decode(&l); err != nil {
		return err
	}
	credential, err := l.credential()
	if err == nil {
		err = credential.check()
	}
	if err != nil {
		return &unusableError{err}
	}
	if credential != (Credential{}) { // "docker login" with a helper leaves an empty entry behind.
		*list = insert(*list, entry{place, credential})
	}
	return nil
}

// insert adds an entry to a sorted list. Of equal credentials it keeps the one with the longest
// place.
func insert(list []entry, e entry) []entry {
	if i := slices.IndexFunc(list, func(o entry) bool { return o.credential == e.credential }); i >= 0 {
		if list[i].place >= e.place {
			return list
		}
		list = slices.Delete(list, i, i+1)
	}
	at := slices.IndexFunc(list, func(o entry) bool { return o.place < e.place })
	if at < 0 {
		at = len(list)
	}
	list = slices.Insert(list, at, e)
	return list[:min(len(list), MaxTried+1)]
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

// credentials lists those for the repository, the most specific first. For Docker Hub it falls back
// to the login entry.
func (r *ring) credentials() []Credential {
	entries := r.found
	if len(entries) == 0 {
		entries = r.hub
	}
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
