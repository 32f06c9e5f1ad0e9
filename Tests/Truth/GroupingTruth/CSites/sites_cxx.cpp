#include <algorithm>
#include <string>
#include <vector>

#include "site_leaf.h"

#define SITE __attribute__((noinline))

static volatile int sink;

namespace codec {

SITE int transcode(site_leaf leaf, const std::string &name) {
    STALL(leaf);
    return static_cast<int>(name.size()) + sink;
}

class Decoder {
public:
    explicit Decoder(int quality) : quality(quality) {}
    SITE int decode(site_leaf leaf) {
        quality *= 2;
        STALL(leaf);
        return quality;
    }
    virtual SITE int flush(site_leaf leaf) { return quality - static_cast<int>(leaf); }
    virtual ~Decoder() = default;

protected:
    int quality;
};

class BufferedDecoder : public Decoder {
public:
    using Decoder::Decoder;
    SITE int flush(site_leaf leaf) override {
        STALL(leaf);
        return quality * quality;
    }
};

template <typename Pixel>
SITE int blend(site_leaf leaf, const std::vector<Pixel> &pixels) {
    Pixel sum{};
    for (Pixel pixel : pixels) sum += pixel;
    STALL(leaf);
    return static_cast<int>(sum);
}

template <typename Key, int Ways>
class Cache {
public:
    SITE int evict(site_leaf leaf, Key key) {
        keys[0] = key;
        STALL(leaf);
        return static_cast<int>(keys[0]) + Ways;
    }

private:
    Key keys[Ways] = {};
};

struct Matrix {
    int cells[4];
    SITE Matrix operator*(const Matrix &other) const {
        Matrix product{};
        for (int index = 0; index < 4; index += 1) {
            product.cells[index] = cells[index] * other.cells[3 - index];
        }
        STALL(static_cast<site_leaf>(cells[0]));
        return product;
    }
};

struct Session {
    int token;
    SITE explicit Session(site_leaf leaf) : token(17) {
        STALL(leaf);
        token += sink;
    }
};

namespace {
SITE int resample(site_leaf leaf, double rate) {
    STALL(leaf);
    return static_cast<int>(rate * 2) + sink;
}
}  // namespace

SITE int drain_queue(site_leaf leaf, int count) {
    auto drain = [leaf](int item) {
        if (item == 1) STALL(leaf);
        return item * 2;
    };
    int sum = 0;
    for (int item = 0; item < count; item += 1) sum += drain(item);
    return sum;
}

SITE int sort_tracks(site_leaf leaf, std::vector<int> tracks) {
    bool is_armed = true;
    std::sort(tracks.begin(), tracks.end(), [&](int left, int right) {
        if (is_armed) {
            is_armed = false;
            STALL(leaf);
        }
        return left < right;
    });
    return tracks[0];
}

}  // namespace codec

int site_cxx_namespace(site_leaf leaf) { return codec::transcode(leaf, "album") + 1; }
int site_cxx_method(site_leaf leaf) {
    codec::Decoder decoder(3);
    return decoder.decode(leaf) + 1;
}
int site_cxx_virtual(site_leaf leaf) {
    codec::BufferedDecoder decoder(4);
    codec::Decoder *volatile base = &decoder;
    return base->flush(leaf) + 1;
}
int site_cxx_template(site_leaf leaf, int instance) {
    if (instance == 0) return codec::blend<int>(leaf, {1, 2, 3}) + 1;
    return codec::blend<double>(leaf, {0.5, 1.5}) + 2;
}
int site_cxx_template_class(site_leaf leaf, int instance) {
    if (instance == 0) return codec::Cache<int, 4>().evict(leaf, 3) + 1;
    return codec::Cache<long, 8>().evict(leaf, 5) + 2;
}
int site_cxx_lambda(site_leaf leaf) { return codec::drain_queue(leaf, 3) + 1; }
int site_cxx_operator(site_leaf leaf) {
    codec::Matrix left{{static_cast<int>(leaf), 1, 2, 3}}, right{{4, 3, 2, 1}};
    return (left * right).cells[0] + 1;
}
int site_cxx_constructor(site_leaf leaf) { return codec::Session(leaf).token + 1; }
int site_cxx_anonymous(site_leaf leaf) { return codec::resample(leaf, 4.5) + 1; }
int site_cxx_sort(site_leaf leaf) { return codec::sort_tracks(leaf, {4, 1, 3}) + 1; }
