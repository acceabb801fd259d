package registry

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

// FuzzReadChallenge: whatever a registry writes into WWW-Authenticate, credentials go to a URL that may
// have them, and nothing long is kept or repeated.
func FuzzReadChallenge(f *testing.F) {
	for _, seed := range []string{
		`Basic realm="x"`, `Bearer realm="https://auth.example/token",service="registry.example",scope="repository:app:pull"`,
		`Bearer realm="http://169.254.169.254/"`, `Bearer realm=https://auth.example/token`, `Negotiate`, `bearer realm="\"`, `Bearer realm="https://[fd00:ec2::254]/"`, "",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, plain bool) {
		scheme := "https"
		if plain {
			scheme = "http"
		}
		response := &http.Response{Header: http.Header{"Www-Authenticate": {text}}, Request: &http.Request{URL: &url.URL{Scheme: scheme}}}
		got, err := readChallenge(response)
		if err != nil {
			if len(err.Error()) > 2*maxText+100 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if len(got.service) > maxService {
			t.Errorf("a service of %d bytes", len(got.service))
		}
		if got.scheme == bearerScheme && (got.realm.Host == "" || got.realm.Scheme != "https" && !plain || len(got.realm.String()) > 4*maxRealm) {
			t.Errorf("the credentials go to %s", got.realm)
		}
	})
}

// FuzzNextPage: a link leads to a query, which can be sent again.
func FuzzNextPage(f *testing.F) {
	for _, seed := range []string{`</v2/app/tags/list?last=9&n=1>; rel="next"`, `<?a=b>;rel=next`, `</v2/>; rel=prev`, `<`, `<%zz?a>; rel="next"`, `</a?last=%00>; rel="next"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query := nextPage(http.Header{"Link": {text}})
		if again, err := url.ParseQuery(query.Encode()); err != nil || len(query) > 0 && again.Encode() != query.Encode() {
			t.Errorf("%q leads to %q, which is read as %q, error %v", text, query.Encode(), again.Encode(), err)
		}
	})
}

// FuzzPauses: no header makes a registry wait for ever, or leads to the past.
func FuzzPauses(f *testing.F) {
	f.Add("120", "0;w=21600", "60", "99999999999")
	f.Add("Fri, 31 Dec 2100 23:59:59 GMT", "-1", "", "-9223372036854775808")
	f.Add("-1", "9999999999999999999", "4294967296", "9223372036854775807")
	f.Fuzz(func(t *testing.T, after, remaining, reset, at string) {
		now := time.Unix(1_700_000_000, 0)
		header := http.Header{"Retry-After": {after}, "Ratelimit-Remaining": {remaining}, "Ratelimit-Reset": {reset}, "X-Ratelimit-Reset": {at}}
		wait, _ := retryafter.Of(header, now, longestPause)
		_, untilReset, window := rateLimit(header, now)
		for _, pause := range []time.Duration{wait, untilReset, window} {
			if pause < 0 || pause > longestPause {
				t.Errorf("a pause of %s", pause)
			}
		}
	})
}

// FuzzReadManifest: an index has a bounded number of platforms with short names and real digests,
// and an image a real digest of its configuration.
func FuzzReadManifest(f *testing.F) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, seed := range []string{
		`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"digest":"` + digest + `","platform":{"os":"linux","architecture":"arm64","variant":"v8"}}]}`,
		`{"config":{"digest":"` + digest + `"},"layers":[{}]}`, `{"manifests":null}`, `{"manifests":{}}`, `[]`, `{"manifests":[` + strings.Repeat(`{},`, maxPlatforms) + `{}]}`,
		`{"os":"linux","architecture":"amd64"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if p, ok := readConfig(body); ok && (p.OS == "" || len(p.String()) > 4*(maxPlatformText+1)) {
			t.Errorf("platform %q", p)
		}
		image, err := readManifest(body, digest)
		if err != nil {
			return
		}
		if !image.Index && !isDigest(image.config) || len(image.Platforms) > maxPlatforms {
			t.Errorf("configuration %q, %d platforms", image.config, len(image.Platforms))
		}
		for _, p := range image.Platforms {
			if !isDigest(p.Digest) || len(p.String()) > 4*(maxPlatformText+1) {
				t.Errorf("platform %q with digest %q", p, p.Digest)
			}
		}
	})
}

// FuzzReadTags: where a JSON decoder finds tags, the same ones are found one at a time, except those
// that are too long.
func FuzzReadTags(f *testing.F) {
	for _, seed := range []string{
		`{"name": "app", "tags": ["1.0", "1.1"]}`, `{"tags": null}`, `{"TAGS": ["a"]}`, `{"tags": ["a" ], "n": [1.5e3, true, {"a": "\""}]}`,
		`{"tags":["` + strings.Repeat(`\u0041`, 200) + `"]}`, `{"tags":["` + strings.Repeat(`\\`, 600) + `"]}`, `{"n":` + strings.Repeat("1", 100) + `}`, `[`, `{"tags":[1]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got []string
		err := readTags(iotest.OneByteReader(strings.NewReader(string(body))), func(tag string) {
			if len(tag) > 3*maxRaw {
				t.Errorf("a tag of %d bytes", len(tag))
			}
			if len(tag) <= maxTag {
				got = append(got, tag)
			}
		})
		if err != nil && !errors.Is(err, errNotAList) {
			t.Errorf("error %v", err)
		}
		var want struct{ Tags []string }
		if json.Unmarshal(body, &want) != nil || strings.Count(strings.ToLower(string(body)), "tags") != 1 || strings.ContainsAny(string(body), "{[") && err != nil {
			return // Not a list, or one in which tags are named more than once.
		}
		short := slices.DeleteFunc(want.Tags, func(tag string) bool { return len(tag) > maxTag })
		if !slices.Equal(got, short) {
			t.Errorf("got %q, want %q", got, short)
		}
	})
}

// TestCondensed: the JSON decoder, which buffers a string or a number as a whole and counts levels, sees
// little of what a registry makes long.
func TestCondensed(t *testing.T) {
	t.Parallel()
	const long = 1 << 20
	for reason, body := range map[string]string{
		"a string":             `{"tags":["` + strings.Repeat("a", long) + `"]}`,
		"an escaped string":    `{"tags":["` + strings.Repeat(`\"`, long) + `"]}`,
		"a string of \\u0061":  `{"tags":["` + strings.Repeat(`\u0061`, long) + `"]}`,
		"a number":             `{"tags":[` + strings.Repeat("1", long) + `]}`,
		"white space":          `{"tags":` + strings.Repeat(" \t\r\n", long) + `[]}`,
		"a string without end": `{"tags":["` + strings.Repeat("a", long),
	} {
		got, err := io.ReadAll(&condensed{from: strings.NewReader(body)})
		if err != nil || len(got) > 2*maxRaw {
			t.Errorf("%s: %d bytes are left, error %v", reason, len(got), err)
		}
	}
	deep := `{"n":` + strings.Repeat("[", long)
	from := strings.NewReader(deep)
	if err := readTags(from, func(string) {}); !errors.Is(err, errNotAList) || from.Len() < long/2 {
		t.Errorf("%d of %d levels are left, error %v", from.Len(), long, err)
	}
}
