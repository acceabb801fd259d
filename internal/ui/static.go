package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// file is what a page loads besides itself.
type file struct {
	// address contains a hash of the content, so a browser may keep the file for ever.
	address string
	content []byte
}

// staticFiles are the files by their names.
func staticFiles() map[string]file {
	files := map[string]file{}
	entries, _ := static.ReadDir("static") // They are part of the program.
	for _, entry := range entries {
		content, _ := static.ReadFile(path.Join("static", entry.Name()))
		sum := sha256.Sum256(content)
		files[entry.Name()] = file{address: path.Join("/static", hex.EncodeToString(sum[:6]), entry.Name()), content: content}
	}
	return files
}

func (s *Server) serveStatic(w http.ResponseWriter, r *http.Request) {
	f, found := s.files[r.PathValue("name")]
	if !found || f.address != r.URL.Path {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	http.ServeContent(w, r, r.PathValue("name"), time.Time{}, bytes.NewReader(f.content))
}

// compressed compresses answers for browsers that can read that.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		to, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // The level is valid.
		next.ServeHTTP(compressor{w, to}, r)
		_ = to.Close() // The browser may have left.
	})
}

// compressor writes the body compressed.
type compressor struct {
	http.ResponseWriter

	to io.Writer
}

func (c compressor) Write(p []byte) (int, error) { return c.to.Write(p) }
