package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// scheme is how a registry wants to know who asks.
type scheme int

const (
	noScheme scheme = iota
	basicScheme
	bearerScheme
)

// challenge is what a registry wants from those who ask.
type challenge struct {
	scheme  scheme
	realm   *url.URL // where tokens are
	service string
}

// readChallenge finds one that can be met among the headers of an answer.
func readChallenge(response *http.Response) (challenge, error) {
	var unknown []string
	for _, text := range response.Header.Values("WWW-Authenticate") {
		name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch strings.ToLower(name) {
		case "basic":
			return challenge{scheme: basicScheme}, nil
		case "bearer":
			parameters := readParameters(rest)
			realm, err := checkRealm(parameters["realm"], isPlain(response))
			return challenge{scheme: bearerScheme, realm: realm, service: parameters["service"]}, err
		default:
			unknown = append(unknown, name)
		}
	}
	return challenge{}, fmt.Errorf("it asks for credentials in no known way %.100q", unknown)
}

// readParameters reads realm="…",service="…". What cannot be read ends it.
func readParameters(text string) map[string]string {
	parameters := map[string]string{}
	for {
		name, rest, found := strings.Cut(strings.TrimLeft(text, " ,\t"), "=")
		if !found {
			return parameters
		}
		var value string
		if value, text, found = quoted(rest); !found {
			value, text, _ = strings.Cut(rest, ",")
		}
		parameters[strings.ToLower(strings.TrimSpace(name))] = value
	}
}

// quoted takes a quoted string from the beginning of a text.
func quoted(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", text, false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			i++
			if i < len(text) {
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(text[i])
		}
	}
	return "", text, false
}

// isPlain reports whether an answer came without TLS.
func isPlain(response *http.Response) bool {
	return response.Request != nil && response.Request.URL.Scheme == "http"
}

// checkRealm refuses a place for tokens that a registry has no business to name: the
// credentials are sent there. One without TLS is only for a registry that is without it.
func checkRealm(text string, plain bool) (*url.URL, error) {
	realm, err := url.Parse(text)
	switch {
	case err != nil || realm.Host == "":
		return nil, errors.New("it names no URL for tokens")
	case realm.Scheme != "https" && (realm.Scheme != "http" || !plain):
		return nil, fmt.Errorf("it wants the credentials over %s", realm.Scheme)
	}
	if address, err := netip.ParseAddr(realm.Hostname()); err == nil && forbidden(address) {
		return nil, fmt.Errorf("it wants the credentials at %s", address)
	}
	return realm, nil
}

// forbidden addresses are those of no registry: the metadata services of clouds, which
// hand out credentials to whoever asks from here.
func forbidden(address netip.Addr) bool {
	return address.Unmap().IsLinkLocalUnicast() || address.WithZone("").String() == "fd00:ec2::254"
}
